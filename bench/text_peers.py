"""The jobs of text_jobs, for peers: word-count or sort with two worker cores and 4 GB.

    python3 text_peers.py pyspark|dask word-count|word-count-sql|sort OUTPUT INPUT

Prints one line of JSON with the seconds that the job took in a session that had started. Spark's jobs are in Scala, in
its own shell, since Python functions would be slower; the sort, and word-count-sql, are in Spark SQL, which compares bytes,
as sort does in the C locale.
"""
import json
import os
import subprocess
import sys
import tempfile
import time

SCALA = {
    "word-count": """sc.textFile(input).flatMap(_.trim.split("[ \\t\\r\\f\\u000b]+")).filter(_.nonEmpty).map(w => (w, 1L))
      .reduceByKey(_ + _).map(c => s"${c._2} ${c._1}").saveAsTextFile(output)""",
    "word-count-sql": """spark.read.text(input).select(org.apache.spark.sql.functions.explode(
      org.apache.spark.sql.functions.split($"value", "[ \\t\\r\\f\\u000b]+")).as("word"))
      .where("word != ''").groupBy("word").count().selectExpr("concat(count, ' ', word)").write.text(output)""",
    "sort": """spark.read.text(input).sort("value").write.text(output)""",
}


def spark(job, output, source):
    import pyspark

    home = os.path.dirname(pyspark.__file__)
    with tempfile.NamedTemporaryFile("w", suffix=".scala", delete=False) as script:
        script.write(
            f"""val input = {json.dumps(source)}
val output = {json.dumps(output)}
val start = System.nanoTime
{SCALA[job]}
println("JOB_SECONDS " + (System.nanoTime - start) / 1e9)
System.exit(0)
"""
        )
    options = ["--master", "local[2]", "--driver-memory", "4g", "--conf", "spark.ui.enabled=false"]
    ran = subprocess.run(
        [f"{home}/bin/spark-shell", *options, "-i", script.name],
        stdin=subprocess.DEVNULL, capture_output=True, text=True, env={**os.environ, "SPARK_HOME": home}, check=False,
    )
    os.unlink(script.name)
    for line in ran.stdout.splitlines():
        if line.startswith("JOB_SECONDS "):
            return float(line.split()[1])
    sys.exit(ran.stdout[-2000:] + ran.stderr[-2000:])


def words_of(lines):
    counts = {}
    for line in lines:
        for word in line.split():
            counts[word] = counts.get(word, 0) + 1
    return counts


def merged(parts):
    total = {}
    for part in parts:
        for word, count in part.items():
            total[word] = total.get(word, 0) + count
    return total


def dask(job, output, source):
    import dask
    import dask.bag

    os.mkdir(output)
    with dask.config.set(scheduler="processes", num_workers=2):
        start = time.perf_counter()
        lines = dask.bag.read_text(source, blocksize="32MiB", errors="surrogateescape")
        if job == "sort":  # a bag has no sort: its partitions are sorted in the workers and merged here
            import heapq

            parts = dask.compute(*[d for d in lines.map_partitions(lambda p: sorted(p)).to_delayed()])
            result = heapq.merge(*parts)
        else:
            counts = lines.reduction(words_of, merged, split_every=8).compute()
            result = (f"{count} {word}\n" for word, count in counts.items())
        with open(f"{output}/part-0", "w", errors="surrogateescape") as file:
            file.writelines(result)
        return time.perf_counter() - start


if __name__ == "__main__":
    if len(sys.argv) != 5 or sys.argv[1] not in ("pyspark", "dask") or sys.argv[2] not in SCALA:
        sys.exit(__doc__)
    run = spark if sys.argv[1] == "pyspark" else dask
    print(json.dumps({"what": f"{sys.argv[1]}: {sys.argv[2]}", "job_seconds": round(run(*sys.argv[2:]), 3)}), flush=True)
