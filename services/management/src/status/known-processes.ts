import {
  checkProcessStatus,
  type ProcessStatus,
  processStatuses,
  type ServiceName,
  type SystemStatus,
  serviceNames,
} from "@halyard/contracts";
import { createReporters, type FollowedReports, followReports } from "@halyard/reports";
import type { NatsConnection } from "@nats-io/transport-node";
import type { Logger } from "pino";

type ListedProcess = SystemStatus["processes"][number];

/**
 * The processes that report their status, this one included.
 *
 * Silence counts only in ticks with a report from any process. Otherwise a NATS server that does not respond would
 * remove all processes.
 */
export type KnownProcesses = {
  /** Returns the reason if it ignores the status. */
  take(service: ServiceName, status: ProcessStatus): string | undefined;
  /** Counts the silence of processes. Call it every `tickMs`. */
  tick(): void;
  list(): ListedProcess[];
};

const tickMs = processStatuses.intervalMs;
const forgottenAfterTicks = 5;
/** Bounds the memory and the response if a compromised service reports under many ids. */
const maxProcessesOfService = 200;

export function createKnownProcesses(): KnownProcesses {
  const bounds = { silentAfterTicks: forgottenAfterTicks, maxReporters: maxProcessesOfService };
  const services = new Map(
    serviceNames.map((service) => [service, createReporters<ProcessStatus>(bounds)]),
  );
  let hasReport = false;

  return {
    take(service, status) {
      if (services.get(service)?.set(status.id, status) !== true)
        return "too many processes report";
      hasReport = true;
      return undefined;
    },
    tick() {
      if (!hasReport) return;
      hasReport = false;
      for (const processes of services.values()) processes.tick();
    },
    list: () =>
      [...services]
        .flatMap(([service, processes]) =>
          [...processes.states()].map((status) => listed(service, status)),
        )
        .toSorted((a, b) => compare(sortKey(a), sortKey(b))),
  };
}

/** Passes reports to the known processes until it is stopped. */
export function followProcesses(
  connection: NatsConnection,
  processes: KnownProcesses,
  logger: Logger,
): FollowedReports {
  return followReports({
    ...{ connection, subject: processStatuses.everySubject, maxBytes: processStatuses.maxBytes },
    check: checkProcessStatus,
    onReport(status, subject) {
      const service = processStatuses.serviceOf(subject);
      return service && processes.take(service, status);
    },
    ...{ tickMs, onTick: processes.tick, onLoss: () => undefined, logger },
  });
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
