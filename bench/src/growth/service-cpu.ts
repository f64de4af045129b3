import type { Service } from "../system/services.ts";

const cpuSeconds = /^process_cpu_seconds_total(?:\{[^}]*\})? (\S+)/m;

/**
 * CPU time of a service in milliseconds, from its own metric, because /proc counts in steps of 10 ms. Loading
 * the modules is not part of it.
 */
export async function serviceCpuMs({ metricsUrl }: Service): Promise<number> {
  const text = await (await fetch(`${metricsUrl}/metrics`)).text();
  const seconds = cpuSeconds.exec(text)?.[1];
  if (seconds === undefined) throw new Error(`No CPU time in the metrics at ${metricsUrl}.`);
  return Number(seconds) * 1e3;
}
