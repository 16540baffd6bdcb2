#pragma once

/// All that a job's author needs, included as <troupe/troupe.hpp>: troupe::run, session, dataset, broadcast,
/// accumulator, resource profiles, task_context, named tasks and job, serialisation.

#include <troupe/runtime/api/accumulator.hpp>
#include <troupe/runtime/api/broadcast.hpp>
#include <troupe/runtime/api/dataset.hpp>
#include <troupe/runtime/api/job.hpp>
#include <troupe/runtime/api/job_error.hpp>
#include <troupe/runtime/api/resource_profile_builder.hpp>
#include <troupe/runtime/api/run.hpp>
#include <troupe/runtime/api/serialize.hpp>
#include <troupe/runtime/api/session.hpp>
#include <troupe/runtime/api/words.hpp>
#include <troupe/runtime/execution/task_context.hpp>
