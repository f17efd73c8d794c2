"""Reads the Parquet files of a directory with DuckDB and prints what the test compares: JSON, one object."""

import json
import sys

import duckdb

directory = sys.argv[1]


def rows(sql):
    return duckdb.sql(sql.replace("@", directory)).fetchall()


result = {
    "regions": rows("SELECT category, name, message, tid, start, \"end\", duration, stack_id, parent_stack_id"
                    " FROM '@/trace_regions.parquet' ORDER BY start, \"end\", stack_id"),
    "kernels": rows("SELECT name, agent_name, agent_log_index, agent_type, queue_id, grid_x, workgroup_x, vgpr_count,"
                    " start, \"end\", stack_id FROM '@/trace_kernels.parquet' ORDER BY dispatch_id"),
    "copies": rows("SELECT name, size, dst_agent_type, src_agent_type, start, \"end\""
                   " FROM '@/trace_memory_copies.parquet' ORDER BY start"),
    "allocations": rows("SELECT type, level, agent_name, address, size, start"
                        " FROM '@/trace_memory_allocations.parquet' ORDER BY start, stack_id"),
    "joined": rows("SELECT k.name, count(*), sum(k.duration) FROM '@/trace_kernels.parquet' k"
                   " JOIN '@/trace_regions.parquet' r USING (guid, stack_id) GROUP BY ALL ORDER BY 1"),
    "agents": rows("SELECT name, type, logical_index, json_extract(extdata, '$.cu_count')::BIGINT = cu_count"
                   " FROM '@/trace_agents.parquet' ORDER BY id"),
    "symbols": rows("SELECT count(*), count(DISTINCT display_name) FROM '@/trace_kernel_symbols.parquet'"),
    "processes": rows("SELECT pid, command, fini > init FROM '@/trace_processes.parquet'"),
    "types": rows("SELECT DISTINCT column_type FROM (DESCRIBE SELECT * FROM '@/trace_kernels.parquet') ORDER BY 1"),
    "codes": rows("SELECT count(*) FROM '@/trace_code_objects.parquet'"),
}
print(json.dumps(result))
