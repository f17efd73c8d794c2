//! `agent_info.csv`.

use std::path::PathBuf;

use rpd_core::agent::Agent;
use rpd_core::session::Session;

use super::combined::Begin;
use super::{Row, write_header};
use crate::WriteError;
use crate::file::TextFile;

/// A numeric column and where its value is.
type Number = (&'static str, fn(&Agent) -> u64);

/// The numeric columns behind the first three.
const NUMBERS: [Number; 46] = [
    ("Cpu_Cores_Count", |a| a.cpu_cores_count.into()),
    ("Simd_Count", |a| a.simd_count.into()),
    ("Cpu_Core_Id_Base", |a| a.cpu_core_id_base.into()),
    ("Simd_Id_Base", |a| a.simd_id_base.into()),
    ("Max_Waves_Per_Simd", |a| a.max_waves_per_simd.into()),
    ("Lds_Size_In_Kb", |a| a.lds_size_in_kb.into()),
    ("Gds_Size_In_Kb", |a| a.gds_size_in_kb.into()),
    ("Num_Gws", |a| a.num_gws.into()),
    ("Wave_Front_Size", |a| a.wave_front_size.into()),
    ("Num_Xcc", |a| a.num_xcc.into()),
    ("Cu_Count", |a| a.cu_count.into()),
    ("Array_Count", |a| a.array_count.into()),
    ("Num_Shader_Banks", |a| a.num_shader_banks.into()),
    ("Simd_Arrays_Per_Engine", |a| {
        a.simd_arrays_per_engine.into()
    }),
    ("Cu_Per_Simd_Array", |a| a.cu_per_simd_array.into()),
    ("Simd_Per_Cu", |a| a.simd_per_cu.into()),
    ("Max_Slots_Scratch_Cu", |a| a.max_slots_scratch_cu.into()),
    ("Gfx_Target_Version", |a| a.gfx_target_version.into()),
    ("Vendor_Id", |a| a.vendor_id.into()),
    ("Device_Id", |a| a.device_id.into()),
    ("Location_Id", |a| a.location_id.into()),
    ("Domain", |a| a.domain.into()),
    ("Drm_Render_Minor", |a| a.drm_render_minor.into()),
    ("Num_Sdma_Engines", |a| a.num_sdma_engines.into()),
    ("Num_Sdma_Xgmi_Engines", |a| a.num_sdma_xgmi_engines.into()),
    ("Num_Sdma_Queues_Per_Engine", |a| {
        a.num_sdma_queues_per_engine.into()
    }),
    ("Num_Cp_Queues", |a| a.num_cp_queues.into()),
    ("Max_Engine_Clk_Ccompute", |a| {
        a.max_engine_clk_ccompute.into()
    }),
    ("Max_Engine_Clk_Fcompute", |a| {
        a.max_engine_clk_fcompute.into()
    }),
    ("Sdma_Fw_Version", |a| a.sdma_fw_version.into()),
    ("Fw_Version", |a| a.fw_version.into()),
    ("Capability", |a| a.capability.into()),
    ("Cu_Per_Engine", |a| a.cu_per_engine.into()),
    ("Max_Waves_Per_Cu", |a| a.max_waves_per_cu.into()),
    ("Family_Id", |a| a.family_id.into()),
    ("Workgroup_Max_Size", |a| a.workgroup_max_size.into()),
    ("Grid_Max_Size", |a| a.grid_max_size.into()),
    ("Local_Mem_Size", |a| a.local_mem_size),
    ("Hive_Id", |a| a.hive_id),
    ("Gpu_Id", |a| a.gpu_id),
    ("Workgroup_Max_Dim_X", |a| a.workgroup_max_dim[0].into()),
    ("Workgroup_Max_Dim_Y", |a| a.workgroup_max_dim[1].into()),
    ("Workgroup_Max_Dim_Z", |a| a.workgroup_max_dim[2].into()),
    ("Grid_Max_Dim_X", |a| a.grid_max_dim[0].into()),
    ("Grid_Max_Dim_Y", |a| a.grid_max_dim[1].into()),
    ("Grid_Max_Dim_Z", |a| a.grid_max_dim[2].into()),
];

/// Writes the agents in the order of their topology nodes.
pub(super) fn write(session: &Session, path: PathBuf) -> Result<PathBuf, WriteError> {
    let mut file = TextFile::create(path)?;
    write_rows(&mut file, session, &Begin::run(false))?;
    file.finish()
}

/// Writes header and rows.
pub(super) fn write_rows(
    file: &mut TextFile,
    session: &Session,
    begin: &Begin,
) -> Result<(), WriteError> {
    let mut columns = vec!["Node_Id", "Logical_Node_Id", "Agent_Type"];
    columns.extend(NUMBERS.iter().map(|(name, _)| name));
    columns.extend(["Name", "Vendor_Name", "Product_Name", "Model_Name"]);
    write_header(file, begin, columns);

    let mut agents: Vec<&Agent> = session.agents.iter().collect();
    agents.sort_by_key(|agent| agent.node_id);
    for agent in agents {
        let row = Row::new(&mut file.buffer, &begin.row)
            .number(agent.node_id)
            .number(agent.logical_node_id)
            .text(agent.agent_type.label());
        NUMBERS
            .iter()
            .fold(row, |row, (_, value)| row.number(value(agent)))
            .text(&agent.name)
            .text(&agent.vendor_name)
            .text(&agent.product_name)
            .text(&agent.model_name)
            .end();
    }
    Ok(())
}
