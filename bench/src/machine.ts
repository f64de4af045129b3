import { cpus, loadavg, release, totalmem, type } from "node:os";
import type { Cores } from "./processes/cores.ts";

/** The machine of a measurement. */
export type Machine = {
  cpu: string;
  cores: number;
  memoryGb: number;
  system: string;
  node: string;
  pinning: string;
  /** Load average of the minute before. Above zero, other processes were running. */
  loadBefore: number;
};

/** Read once, before the benchmarks add to it. */
const loadBefore = Math.round((loadavg()[0] ?? 0) * 100) / 100;

export function describeMachine(cores: Cores | undefined): Machine {
  const all = cpus();
  return {
    cpu: all[0]?.model.trim() ?? "unknown",
    cores: all.length,
    memoryGb: Math.round(totalmem() / 1e9),
    system: `${type()} ${release()}`,
    node: process.version,
    pinning:
      cores === undefined
        ? "nothing pinned"
        : `the measured process on core ${cores.server}, everything else on core ${cores.load}`,
    loadBefore,
  };
}

export function machineLine(machine: Machine): string {
  const { cpu, cores, memoryGb, system, node, pinning, loadBefore: load } = machine;
  return (
    `${cpu}, ${cores} cores, ${memoryGb} GB, ${system}, Node.js ${node}; ${pinning}; ` +
    `load average before: ${load}`
  );
}
