"""Reads the counters among the Parquet files of a directory with DuckDB: JSON, one object."""

import json
import sys

import duckdb

directory = sys.argv[1]


def rows(sql):
    return duckdb.sql(sql.replace("@", directory)).fetchall()


print(json.dumps({
    "sums": rows("SELECT dispatch_id, counter_name, value, kernel_name, agent_log_index, queue_id, grid_size,"
                 " workgroup_size, vgpr_count, start, \"end\", stack_id, counter_id"
                 " FROM '@/trace_counters_collection.parquet' ORDER BY dispatch_id, counter_id"),
    "values": rows("SELECT dispatch_id, counter_name, counter_value, dimension_shader_engine, instance"
                   " FROM '@/trace_pmc_events.parquet' WHERE dispatch_id = 2 ORDER BY counter_id, instance"),
    "info": rows("SELECT id, name, block, expression, is_derived FROM '@/trace_pmc_info.parquet' ORDER BY id"),
    "added": rows("SELECT count(*) FROM (SELECT dispatch_id, counter_name, sum(counter_value) AS value"
                  " FROM '@/trace_pmc_events.parquet' GROUP BY ALL) JOIN '@/trace_counters_collection.parquet'"
                  " USING (dispatch_id, counter_name, value)"),
}))
