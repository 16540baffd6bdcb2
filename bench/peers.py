"""The same measurements for peers from PyPI; each prints one line of JSON per figure and skips with a reason.

    python3 peers.py dask|ray|pyspark|hyperqueue [TASKS]

Tasks are no-ops with an argument and a result of 16 bytes, on two worker processes of one core each. HyperQueue's are
processes (`true`), as Troupe's commands are; its client looks for the end once a second, so its jobs are large.
"""
import json
import sys
import time


def say(**figures):
    print(json.dumps(figures), flush=True)


def percentile(values, p):
    values = sorted(values)
    return values[min(len(values) - 1, int(len(values) * p))]


def echo(argument):
    return argument


def measure(name, run_many, run_one, tasks, cold):
    say(what=f"{name} first result", seconds=cold)
    run_many(200)
    for _ in range(3):
        start = time.perf_counter()
        run_many(tasks)
        seconds = time.perf_counter() - start
        say(what=f"{name} separate", tasks=tasks, seconds=seconds, tasks_per_second=int(tasks / seconds))
    times = []
    for _ in range(200):
        time.sleep(0.001)
        start = time.perf_counter()
        run_one()
        times.append((time.perf_counter() - start) * 1e6)
    say(what=f"{name} latency", p50_us=percentile(times, 0.5), p99_us=percentile(times, 0.99))


def dask(tasks):
    start = time.perf_counter()
    from dask.distributed import Client, LocalCluster
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster, Client(cluster) as client:
        client.submit(echo, b"0" * 16, pure=False).result()
        cold = time.perf_counter() - start
        measure("dask", lambda n: client.gather(client.map(echo, [b"%016d" % i for i in range(n)], pure=False)),
                lambda: client.submit(echo, b"0" * 16, pure=False).result(), tasks, cold)


def ray(tasks):
    start = time.perf_counter()
    import ray as r
    r.init(num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
    remote = r.remote(echo)
    r.get(remote.remote(b"0" * 16))
    cold = time.perf_counter() - start
    measure("ray", lambda n: r.get([remote.remote(b"%016d" % i) for i in range(n)]),
            lambda: r.get(remote.remote(b"0" * 16)), tasks, cold)
    r.shutdown()


def pyspark(tasks):
    start = time.perf_counter()
    from pyspark.sql import SparkSession
    spark = SparkSession.builder.master("local-cluster[2,1,1024]").config("spark.ui.enabled", "false").getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    context = spark.sparkContext
    context.parallelize([b"0" * 16], 1).map(echo).collect()
    cold = time.perf_counter() - start
    # One partition is one Spark task.
    measure("pyspark", lambda n: context.parallelize([b"%016d" % i for i in range(n)], n).map(echo).collect(),
            lambda: context.parallelize([b"0" * 16], 1).map(echo).collect(), min(tasks, 2000), cold)
    spark.stop()


def hyperqueue(tasks):
    start = time.perf_counter()
    from hyperqueue import Job, LocalCluster
    from hyperqueue.cluster import WorkerConfig
    with LocalCluster() as cluster:
        for _ in range(2):
            cluster.start_worker(WorkerConfig(cores=1))
        client = cluster.client()

        def run(n):
            job = Job()
            for _ in range(n):
                job.program(["true"], stdout=None, stderr=None)
            client.wait_for_jobs([client.submit(job)])

        run(1)
        say(what="hyperqueue first result", seconds=time.perf_counter() - start)
        for _ in range(3):
            start = time.perf_counter()
            run(tasks)
            seconds = time.perf_counter() - start
            say(what="hyperqueue true", tasks=tasks, seconds=seconds, tasks_per_second=int(tasks / seconds))


if __name__ == "__main__":
    peer = {"dask": dask, "ray": ray, "pyspark": pyspark, "hyperqueue": hyperqueue}[sys.argv[1]]
    try:
        peer(int(sys.argv[2]) if len(sys.argv) > 2 else 10000)
    except Exception as e:  # a peer that cannot run is skipped, not an error of ours
        say(what=sys.argv[1], skipped=f"{type(e).__name__}: {e}"[:300])
