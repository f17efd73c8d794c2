-- Regions and samples have none over event_id: it is their id, see schema.sql.
CREATE INDEX rpd_arg_event%suffix% ON rocpd_arg%suffix% (event_id);
CREATE INDEX rpd_pmc_event_event%suffix% ON rocpd_pmc_event%suffix% (event_id);
CREATE INDEX rpd_region_start%suffix% ON rocpd_region%suffix% (start);
CREATE INDEX rpd_kernel_dispatch_start%suffix% ON rocpd_kernel_dispatch%suffix% (start);
CREATE INDEX rpd_kernel_dispatch_event%suffix% ON rocpd_kernel_dispatch%suffix% (event_id);
CREATE INDEX rpd_memory_copy_start%suffix% ON rocpd_memory_copy%suffix% (start);
CREATE INDEX rpd_memory_copy_event%suffix% ON rocpd_memory_copy%suffix% (event_id);
CREATE INDEX rpd_memory_allocate_start%suffix% ON rocpd_memory_allocate%suffix% (start);
CREATE INDEX rpd_memory_allocate_event%suffix% ON rocpd_memory_allocate%suffix% (event_id);
