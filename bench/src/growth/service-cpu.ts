import type { Service } from "../system/services.ts";

const cpuSeconds = /^process_cpu_seconds_total(?:\{[^}]*\})? (\S+)/m;

/**
 * Returns the CPU time of a service in milliseconds, without the loading of modules. It uses the service's
 * metric, because /proc has a resolution of 10 ms.
 */
export async function serviceCpuMs({ metricsUrl }: Service): Promise<number> {
  const text = await (await fetch(`${metricsUrl}/metrics`)).text();
  const seconds = cpuSeconds.exec(text)?.[1];
  if (seconds === undefined) throw new Error(`No CPU time in the metrics at ${metricsUrl}.`);
  return Number(seconds) * 1e3;
}
