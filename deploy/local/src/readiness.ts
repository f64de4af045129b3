import { setTimeout as delay } from "node:timers/promises";
import type { Ending } from "./ending.ts";
import type { ServiceProcess } from "./service-process.ts";
import { StartError } from "./start-error.ts";

/** The first snapshot, or the first leadership, takes well below a second. */
const PATIENCE_MS = 30_000;
const LOOK_EVERY_MS = 25;
const ANSWER_PATIENCE_MS = 5_000;

/** Waits until the service says that it can do its job. */
export async function awaitReady(service: ServiceProcess, ending: Ending): Promise<void> {
  if (service.metricsUrl === undefined) return;
  const deadline = Date.now() + PATIENCE_MS;
  let answer = "";
  while (!ending.hasSettled()) {
    const response = await look(new URL("/readyz", service.metricsUrl));
    if (response.ready) return;
    answer = response.answer;
    if (Date.now() > deadline) {
      throw new StartError(
        `${service.name} is not ready after ${PATIENCE_MS / 1000} s: ${answer}. Its log is ${service.logFile}.`,
      );
    }
    await delay(LOOK_EVERY_MS);
  }
}

async function look(url: URL): Promise<{ ready: boolean; answer: string }> {
  try {
    const response = await fetch(url, { signal: AbortSignal.timeout(ANSWER_PATIENCE_MS) });
    return { ready: response.ok, answer: (await response.text()).trim() };
  } catch (error) {
    // Whether it died is seen by its supervisor; here it is only not ready.
    return { ready: false, answer: error instanceof Error ? error.message : String(error) };
  }
}
