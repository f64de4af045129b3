import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import {
  type BackgroundProcess,
  StartError,
  startBackgroundProcess,
} from "@halyard/local-backends";
import { type ProcessName, programDirs } from "./config.ts";
import type { Ending } from "./ending.ts";
import { describeDeath } from "./process-end.ts";
import type { Supervised } from "./supervise.ts";

/** Describes how to start a service, with only the variables that it needs. */
export type ServicePlan = {
  name: ProcessName;
  environment: Record<string, string>;
  /** The port to listen on; 0 means any free port. */
  port: number;
  /** Runs before the first start, and before a restart after a change of sources. */
  prepare?: () => Promise<void>;
};

export type ServiceProcess = BackgroundProcess & {
  name: string;
  url: string;
  metricsUrl: string | undefined;
};

export type SupervisedService = Supervised<ServiceProcess>;

/** Time limit of a start, which usually takes well below a second. The rest allows for a machine under heavy load. */
const startTimeoutMs = 60_000;

/** Time limit for `/readyz`. The first snapshot, or the first leadership, usually takes well below a second. */
const readyTimeoutMs = 30_000;
const pollIntervalMs = 25;
const answerTimeoutMs = 5_000;

/** Every service drains within 20 s of SIGTERM. */
const stopSteps = [{ signal: "SIGTERM", timeoutMs: 21_000 }] as const;

type Listening = { type: "listening"; url: string; metrics_url?: string };

/**
 * Starts a service and returns when it listens. It takes over the ports of the previous process, so that the gateway
 * and metrics collectors still reach it. Its output goes to a log file.
 */
export async function startServiceProcess(
  plan: ServicePlan,
  context: { projectDir: string; logsDir: string },
  previous: ServiceProcess | undefined,
): Promise<ServiceProcess> {
  const { name } = plan;
  const listening = Promise.withResolvers<Listening>();
  const child = await startBackgroundProcess({
    command: process.execPath,
    args: [join(context.projectDir, programDirs[name], "src/main.ts")],
    logFile: join(context.logsDir, `${name}.log`),
    workingDirectory: context.projectDir,
    environment: {
      ...plan.environment,
      PORT: portOf(previous?.url) ?? String(plan.port),
      METRICS_PORT: portOf(previous?.metricsUrl) ?? "0",
    },
    stopSteps: [...stopSteps],
    onMessage: (message) => {
      if (isListening(message)) listening.resolve(message);
    },
  });
  const { logFile, exited, stop } = child;
  const failed = Promise.withResolvers<never>();
  // After the process has started to listen, its supervisor handles its end.
  failed.promise.catch(() => {});
  const fail = (message: string) => failed.reject(new StartError(message));
  void exited.then((status) => fail(describeDeath(name, status, logFile)));
  const silent = `${name} did not listen within ${startTimeoutMs / 1000} s. See its log: ${logFile}`;
  const timer = setTimeout(() => fail(silent), startTimeoutMs);
  try {
    const { url, metrics_url } = await Promise.race([listening.promise, failed.promise]);
    return { ...child, name, url, metricsUrl: metrics_url };
  } catch (error) {
    await stop();
    throw error;
  } finally {
    clearTimeout(timer);
  }
}

function portOf(url: string | undefined): string | undefined {
  return url === undefined ? undefined : new URL(url).port;
}

function isListening(message: unknown): message is Listening {
  return (message as Partial<Listening> | null)?.type === "listening";
}

/** Waits until the service is ready, even if it dies and is restarted in the meantime. */
export async function awaitReady(service: SupervisedService, ending: Ending): Promise<void> {
  const { metricsUrl, logFile } = service.current();
  if (metricsUrl === undefined) return;
  const deadline = Date.now() + readyTimeoutMs;
  while (!ending.hasSettled()) {
    const problem = await findReadyProblem(new URL("/readyz", metricsUrl));
    if (problem === undefined) return;
    if (Date.now() > deadline) {
      throw new StartError(
        `${service.name} is not ready after ${readyTimeoutMs / 1000} s: ${problem}. See its log: ${logFile}`,
      );
    }
    await delay(pollIntervalMs);
  }
}

async function findReadyProblem(url: URL): Promise<string | undefined> {
  try {
    const response = await fetch(url, { signal: AbortSignal.timeout(answerTimeoutMs) });
    return response.ok ? undefined : (await response.text()).trim();
  } catch (error) {
    // The supervisor handles the death of a service. Here, a dead service is not ready yet.
    return error instanceof Error ? error.message : String(error);
  }
}
