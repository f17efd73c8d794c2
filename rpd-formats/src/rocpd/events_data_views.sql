-- Views over the tables of HIP events, in databases that have them.
CREATE VIEW hip_events AS
    SELECT h.id, h.guid, c.string AS category, s.string AS name, h.nid, p.pid, t.tid,
        a.absolute_index AS agent_abs_index, a.logical_index AS agent_log_index, a.type_index AS agent_type_index,
        a.type AS agent_type, h.queue_id, h.stream_id, h.hip_event_handle, h.source_queue_id, h.start, h."end",
        h."end" - h.start AS duration, e.stack_id, e.parent_stack_id, e.correlation_id AS corr_id
    FROM rocpd_hip_event h
        JOIN rocpd_event e ON e.id = h.event_id AND e.guid = h.guid
        JOIN rocpd_string s ON s.id = h.name_id AND s.guid = h.guid
        JOIN rocpd_info_process p ON p.id = h.pid AND p.guid = h.guid
        LEFT JOIN rocpd_info_thread t ON t.id = h.tid AND t.guid = h.guid
        LEFT JOIN rocpd_info_agent a ON a.id = h.agent_id AND a.guid = h.guid
        LEFT JOIN rocpd_string c ON c.id = e.category_id AND c.guid = e.guid;
