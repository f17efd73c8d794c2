/* The part of the HSA runtime interface that the workloads use: hand-written, ABI-equal. */
#ifndef RPD_HSA_H
#define RPD_HSA_H
int hsa_init(void);
int hsa_shut_down(void);
#endif
