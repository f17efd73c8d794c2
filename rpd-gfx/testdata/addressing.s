// Kernels of the tests of addresses: what compilers make only in rare cases, so written by hand.
// User SGPRs: scratch descriptor s[0:3], kernel arguments s[4:5]; then the wave's scratch offset s6.
.amdgcn_target "amdgcn-amd-amdhsa--gfx90a"

.macro kernel name
.text
.globl \name
.p2align 8
.type \name,@function
\name:
.endm

.macro end_kernel name, lds=0
  s_endpgm
.size \name, .-\name
.rodata
.p2align 6
.amdhsa_kernel \name
  .amdhsa_user_sgpr_private_segment_buffer 1
  .amdhsa_user_sgpr_kernarg_segment_ptr 1
  .amdhsa_system_sgpr_private_segment_wavefront_offset 1
  .amdhsa_system_sgpr_workgroup_id_x 0
  .amdhsa_private_segment_fixed_size 64
  .amdhsa_group_segment_fixed_size \lds
  .amdhsa_next_free_vgpr 16
  .amdhsa_next_free_sgpr 32
  .amdhsa_accum_offset 16
.end_amdhsa_kernel
.endm

// (out, register): stores the lane's number at the register's offset plus 16 in scratch, loads it back from 8 and
// writes it to out[lane].
kernel scratch_offset
  s_load_dwordx4 s[8:11], s[4:5], 0
  s_waitcnt lgkmcnt(0)
  v_mov_b32 v1, s10
  buffer_store_dword v0, v1, s[0:3], s6 offen offset:16
  s_waitcnt vmcnt(0)
  buffer_load_dword v2, off, s[0:3], s6 offset:8
  s_waitcnt vmcnt(0)
  v_lshlrev_b32 v3, 2, v0
  global_store_dword v3, v2, s[8:9]
end_kernel scratch_offset

// (buffer, register, records): stores the lane's number plus 100 at the register's offset plus 4 times the lane plus 64
// in a plain buffer of that many bytes.
kernel buffer_offset
  s_load_dwordx4 s[8:11], s[4:5], 0
  s_waitcnt lgkmcnt(0)
  v_lshlrev_b32 v1, 2, v0
  v_add_u32 v1, s10, v1
  v_add_u32 v2, 100, v0
  s_mov_b32 s10, s11
  s_mov_b32 s11, 0x27000
  buffer_store_dword v2, v1, s[8:11], 0 offen offset:64
end_kernel buffer_offset

// (out, offset): with 100 bytes of LDS declared, stores 0x55aa at an offset of LDS through a flat address, loads it back
// the same way and through LDS, and writes both to out.
kernel flat_lds
  s_load_dwordx4 s[8:11], s[4:5], 0
  s_waitcnt lgkmcnt(0)
  s_mov_b64 exec, 1
  s_mov_b64 s[12:13], src_shared_base
  v_mov_b32 v2, s10
  v_mov_b32 v3, s13
  v_mov_b32 v4, 0x55aa
  flat_store_dword v[2:3], v4
  s_waitcnt vmcnt(0) lgkmcnt(0)
  flat_load_dword v6, v[2:3]
  ds_read_b32 v7, v2
  s_waitcnt vmcnt(0) lgkmcnt(0)
  v_mov_b32 v5, 0
  global_store_dwordx2 v5, v[6:7], s[8:9]
end_kernel flat_lds, 100

// (out, offset): the same through LDS instructions alone.
kernel direct_lds
  s_load_dwordx4 s[8:11], s[4:5], 0
  s_waitcnt lgkmcnt(0)
  s_mov_b64 exec, 1
  v_mov_b32 v2, s10
  v_mov_b32 v4, 0x55aa
  ds_write_b32 v2, v4
  v_mov_b32 v6, -1
  ds_read_b32 v6, v2
  s_waitcnt lgkmcnt(0)
  v_mov_b32 v7, v6
  v_mov_b32 v5, 0
  global_store_dwordx2 v5, v[6:7], s[8:9]
end_kernel direct_lds, 100

.amdgpu_metadata
amdhsa.version: [1, 2]
amdhsa.kernels:
  - .name: scratch_offset
    .symbol: scratch_offset.kd
    .kernarg_segment_size: 16
    .kernarg_segment_align: 8
    .group_segment_fixed_size: 0
    .private_segment_fixed_size: 64
    .wavefront_size: 64
    .sgpr_count: 32
    .vgpr_count: 16
    .max_flat_workgroup_size: 64
    .args:
      - {.offset: 0, .size: 8, .value_kind: global_buffer, .address_space: global}
      - {.offset: 8, .size: 4, .value_kind: by_value}
      - {.offset: 12, .size: 4, .value_kind: by_value}
  - .name: buffer_offset
    .symbol: buffer_offset.kd
    .kernarg_segment_size: 16
    .kernarg_segment_align: 8
    .group_segment_fixed_size: 0
    .private_segment_fixed_size: 64
    .wavefront_size: 64
    .sgpr_count: 32
    .vgpr_count: 16
    .max_flat_workgroup_size: 64
    .args:
      - {.offset: 0, .size: 8, .value_kind: global_buffer, .address_space: global}
      - {.offset: 8, .size: 4, .value_kind: by_value}
      - {.offset: 12, .size: 4, .value_kind: by_value}
  - .name: flat_lds
    .symbol: flat_lds.kd
    .kernarg_segment_size: 16
    .kernarg_segment_align: 8
    .group_segment_fixed_size: 100
    .private_segment_fixed_size: 64
    .wavefront_size: 64
    .sgpr_count: 32
    .vgpr_count: 16
    .max_flat_workgroup_size: 64
    .args:
      - {.offset: 0, .size: 8, .value_kind: global_buffer, .address_space: global}
      - {.offset: 8, .size: 4, .value_kind: by_value}
      - {.offset: 12, .size: 4, .value_kind: by_value}
  - .name: direct_lds
    .symbol: direct_lds.kd
    .kernarg_segment_size: 16
    .kernarg_segment_align: 8
    .group_segment_fixed_size: 100
    .private_segment_fixed_size: 64
    .wavefront_size: 64
    .sgpr_count: 32
    .vgpr_count: 16
    .max_flat_workgroup_size: 64
    .args:
      - {.offset: 0, .size: 8, .value_kind: global_buffer, .address_space: global}
      - {.offset: 8, .size: 4, .value_kind: by_value}
      - {.offset: 12, .size: 4, .value_kind: by_value}
.end_amdgpu_metadata
