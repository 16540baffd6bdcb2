#include <troupe/tests/support/caf_test_system.hpp>

#include <algorithm>
#include <vector>

#include <caf/actor_system_config.hpp>

#include <troupe/messages/type_ids.hpp>

#if TROUPE_CAF1
#error "tests under virtual time are written for CAF 0.17: its successor keeps the coordinator in libcaf_test"
#endif

#include <caf/atom.hpp>
#include <caf/scheduler/test_coordinator.hpp>

namespace troupe::testing {

struct virtual_system::impl {
  struct virtual_config : caf::actor_system_config {
    virtual_config() {
      init_types();
      register_types(*this);
      set("scheduler.policy", caf::atom("testing"));
    }
  };

  virtual_config config;
  caf::actor_system system{config};
  caf::scheduler::test_coordinator& coordinator = dynamic_cast<caf::scheduler::test_coordinator&>(system.scheduler());
  caf::scoped_actor self{system};
  std::vector<caf::actor> actors;
};

namespace {

/// Ends an actor that would not end for anybody else's message, nor by its own choice.
void kill(const caf::actor& actor) {
  auto order = caf::make_mailbox_element(nullptr, caf::make_message_id(), {},
                                         caf::exit_msg{actor.address(), caf::make_error(caf::exit_reason::kill)});
  auto* whom = caf::actor_cast<caf::abstract_actor*>(actor);
  if (auto* trusted = dynamic_cast<detail::trusted_mailbox*>(whom))
    trusted->take(std::move(order));
  else
    whom->enqueue(std::move(order), nullptr);
}

} // namespace

virtual_system::virtual_system() : impl_(std::make_unique<impl>()) {
  // Time that has never passed is easily confused with none.
  impl_->coordinator.advance_time(std::chrono::hours{1});
}

virtual_system::~virtual_system() {
  // Actors that these have started themselves go with the system.
  impl_->system.await_actors_before_shutdown(false);
  for (const auto& actor : impl_->actors) kill(actor);
  settle();
  impl_->actors.clear();
  settle();
}

caf::actor_system& virtual_system::system() noexcept { return impl_->system; }
caf::scoped_actor& virtual_system::self() noexcept { return impl_->self; }

void virtual_system::settle() { impl_->coordinator.run(); }

void virtual_system::pass(duration time, duration step) {
  settle();
  for (; time > duration::zero(); time -= step) {
    impl_->coordinator.advance_time(std::min(time, step));
    settle();
  }
}

void virtual_system::jump(duration time) {
  impl_->coordinator.advance_time(time);
  settle();
}

time_point virtual_system::now() const { return time_point{impl_->system.clock().now().time_since_epoch()}; }

bool virtual_system::has_mail() { return impl_->self.ptr()->peek_at_next_mailbox_element() != nullptr; }

void virtual_system::remember(caf::actor actor) { impl_->actors.push_back(std::move(actor)); }

void virtual_system::end_now(const caf::actor& actor) {
  kill(actor);
  settle();
}

} // namespace troupe::testing
