import { cpus, loadavg, release, totalmem, type } from "node:os";
import type { Cores } from "./processes/cores.ts";

/** Where something was measured. */
export type Machine = {
  cpu: string;
  cores: number;
  memoryGb: number;
  system: string;
  node: string;
  pinning: string;
  /** Processes that wanted a core in the minute before; above zero, something else was at work. */
  loadBefore: number;
};

/** Once, because from then on the benchmarks themselves are the load. */
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
        ? "nothing pinned, all share all cores"
        : `what is measured on core ${cores.server}, all else on core ${cores.load}`,
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
