import { setTimeout as delay } from "node:timers/promises";
import type { Ending } from "./ending.ts";
import { StartError } from "./start-error.ts";
import type { SupervisedService } from "./supervised-service.ts";

/** The first snapshot, or the first leadership, takes well below a second. */
const PATIENCE_MS = 30_000;
const LOOK_EVERY_MS = 25;
const ANSWER_PATIENCE_MS = 5_000;

/** Waits until the service is ready, also when it dies and is started again meanwhile. */
export async function awaitReady(service: SupervisedService, ending: Ending): Promise<void> {
  const { metricsUrl, logFile } = service.current();
  if (metricsUrl === undefined) return;
  const deadline = Date.now() + PATIENCE_MS;
  let answer = "";
  while (!ending.hasSettled()) {
    const response = await look(new URL("/readyz", metricsUrl));
    if (response.ready) return;
    answer = response.answer;
    if (Date.now() > deadline) {
      throw new StartError(
        `${service.name} is not ready after ${PATIENCE_MS / 1000} s: ${answer}. Its log is ${logFile}.`,
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
    // Its supervisor handles a death. Here a dead service is one that is not ready yet.
    return { ready: false, answer: error instanceof Error ? error.message : String(error) };
  }
}
