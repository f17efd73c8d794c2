-- Made after the load, as indices.sql.
CREATE INDEX rpd_frame_location%suffix% ON rpd_frame%suffix% (location_id);
