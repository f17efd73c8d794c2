-- Views over the tables of graphs, in databases that have them.
CREATE VIEW graph_launches AS
    SELECT g.id, g.guid, c.string AS category, g.nid, p.pid, t.tid, a.absolute_index AS agent_abs_index,
        a.logical_index AS agent_log_index, a.type_index AS agent_type_index, a.type AS agent_type, g.queue_id, g.start,
        g."end", g."end" - g.start AS duration, g.graph_exec_id, g.kernel_dispatch_count, e.stack_id,
        e.parent_stack_id, e.correlation_id AS corr_id
    FROM rocpd_graph_launch g
        JOIN rocpd_event e ON e.id = g.event_id AND e.guid = g.guid
        JOIN rocpd_info_process p ON p.id = g.pid AND p.guid = g.guid
        LEFT JOIN rocpd_info_thread t ON t.id = g.tid AND t.guid = g.guid
        LEFT JOIN rocpd_info_agent a ON a.id = g.agent_id AND a.guid = g.guid
        LEFT JOIN rocpd_string c ON c.id = e.category_id AND c.guid = e.guid;
