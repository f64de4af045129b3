import {
  checkProcessStatus,
  type ProcessStatus,
  processStatuses,
  type ServiceName,
  type SystemStatus,
} from "@halyard/contracts";
import { parseJson } from "@halyard/jetstream";
import type { Msg, NatsConnection } from "@nats-io/transport-node";

type ListedProcess = SystemStatus["processes"][number];

/**
 * The processes that report their status, this one included.
 *
 * Silence is counted in timer ticks, and only ticks with a report from any process count. Otherwise a NATS outage or a
 * suspension of this process would remove all the others.
 */
export type KnownProcesses = {
  take(service: ServiceName, status: ProcessStatus): void;
  /** Counts the silence of processes. Call it every `tickMs`. */
  tick(): void;
  list(): ListedProcess[];
};

const tickMs = processStatuses.intervalMs;
const forgottenAfterTicks = 5;
/** Bounds the memory and the response if a compromised service reports under many ids. */
const maxProcessesOfService = 200;

export function createKnownProcesses(): KnownProcesses {
  const processes = new Map<
    string,
    { service: ServiceName; status: ProcessStatus; silentTicks: number }
  >();
  let hasReport = false;
  const countOf = (service: ServiceName) =>
    [...processes.values()].filter((known) => known.service === service).length;

  return {
    take(service, status) {
      // The id alone could be one of another service.
      const key = `${service} ${status.id}`;
      if (!processes.has(key) && countOf(service) >= maxProcessesOfService) return;
      processes.set(key, { service, status, silentTicks: 0 });
      hasReport = true;
    },
    tick() {
      if (!hasReport) return;
      hasReport = false;
      for (const [key, known] of processes) {
        known.silentTicks += 1;
        if (known.silentTicks > forgottenAfterTicks) processes.delete(key);
      }
    },
    list: () =>
      [...processes.values()]
        .map(({ service, status }) => listed(service, status))
        .toSorted((a, b) => compare(sortKey(a), sortKey(b))),
  };
}

/** Passes reports to the known processes until it is stopped. Invalid reports are ignored. */
export function followProcesses(
  connection: NatsConnection,
  processes: KnownProcesses,
): { stop(): void } {
  const subscription = connection.subscribe(processStatuses.everySubject, {
    callback: (error, message) => {
      const report = error === null ? parseReport(message) : undefined;
      if (report !== undefined) processes.take(report.service, report.status);
    },
  });
  const ticking = setInterval(processes.tick, tickMs).unref();
  return {
    stop() {
      clearInterval(ticking);
      subscription.unsubscribe();
    },
  };
}

function parseReport({ subject, data }: Msg) {
  const service = processStatuses.serviceOf(subject);
  if (service === undefined || data.length > processStatuses.maxBytes) return undefined;
  const checked = checkProcessStatus(parseJson(data));
  return checked.ok ? { service, status: checked.value } : undefined;
}

function listed(
  service: ServiceName,
  { id, version, started_at, followers }: ProcessStatus,
): ListedProcess {
  const stale = followers.filter(({ state }) => state === "stale");
  const isCurrent = followers.length > 0 && followers.every(({ state }) => state === "current");
  return {
    ...{ service, id, version, started_at },
    state: stale.length > 0 ? "stale" : isCurrent ? "current" : "starting",
    stale_seconds: Math.max(0, ...stale.map(({ stale_seconds }) => stale_seconds)),
    stale_streams: stale.map(({ stream }) => stream),
  };
}

const sortKey = ({ service, started_at, id }: ListedProcess) => [service, started_at, id].join(" ");

const compare = (a: string, b: string) => (a < b ? -1 : 1);
