import type { Sql } from "@halyard/postgres";
import { startInterval } from "@halyard/timing";
import type { Logger } from "pino";
import type { TimeAndIds } from "../access/change-context.ts";
import type { Write, Writer } from "../outbox/write.ts";
import { unattended } from "./apply-request.ts";
import { readPlace } from "./base.ts";
import { isOpen, nextStep } from "./change-request.ts";
import { record } from "./record-request.ts";
import { findProjectsWithOpen, lockRequest, readOpen, updateRequest } from "./request-store.ts";
import { findStale, readStanding } from "./standing.ts";

/** Time between two searches for stale requests. */
const intervalMs = 1_000;

/** Maximum number of projects per search. The others follow in the next one. */
const atOnce = 20;

type Options = TimeAndIds & { sql: Sql; writer: Writer; logger: Logger };

/**
 * Marks requests as stale soon after a conflicting change, in the process that leads, so that reviewers get the event. It
 * is apart from the conflicting change, which must neither wait for requests nor lock them. The application of a request
 * does not depend on it.
 */
export function startMarkingStale(options: Options & { isLeading: () => boolean }): {
  stop(): Promise<void>;
} {
  const { logger, isLeading } = options;
  const search = createStaleSearch(options);
  return startInterval(
    async (signal) => {
      if (isLeading()) await search(() => !signal.aborted);
    },
    {
      intervalMs,
      isExpected: () => true,
      onFailure: (err) => logger.warn({ err }, "stale change requests were not marked; retrying"),
    },
  );
}

/** Returns the search, which compares the open requests of a project after each change in its audit log. */
export function createStaleSearch(
  options: Options,
): (mayContinue?: () => boolean) => Promise<void> {
  const { sql, logger } = options;
  /** The sequence of the newest audit entry of each project at the last comparison. */
  let compared = new Map<string, number | null>();
  return async (mayContinue = () => true) => {
    const projects = await findProjectsWithOpen(sql);
    compared = new Map(
      projects.flatMap(({ projectId }) => {
        const sequence = compared.get(projectId);
        return sequence === undefined ? [] : [[projectId, sequence]];
      }),
    );
    const changed = projects.filter(
      ({ projectId, sequence }) => compared.get(projectId) !== sequence,
    );
    for (const { projectId, sequence } of changed.slice(0, atOnce)) {
      if (!mayContinue()) return;
      try {
        await markStale(options, projectId);
        compared.set(projectId, sequence);
      } catch (err) {
        // The others must not wait for it.
        logger.error({ projectId, err }, "stale change requests were not marked; retrying");
      }
    }
  };
}

async function markStale({ sql, writer, now, newId }: Options, projectId: string): Promise<void> {
  const [place, { open }] = [await readPlace(sql, projectId), await readOpen(sql, { projectId })];
  for (const id of await findStale(sql, place, open))
    await writer((write) => markRequest({ ...write, now, newId }, { id, projectId }));
}

/** Marks a request, unless it has changed since it was found. */
async function markRequest(
  write: Write & TimeAndIds,
  scope: { id: string; projectId: string },
): Promise<object> {
  const request = await lockRequest(write.tx, scope);
  if (request === undefined || !isOpen(request)) return {};
  const place = await readPlace(write.tx, scope.projectId);
  const { differences } = await readStanding(write.tx, request, place);
  if (differences.length === 0) return {};
  const stale = { ...request, status: "stale" as const, ...nextStep(request, write.now()) };
  await updateRequest(write.tx, stale);
  const context = () => unattended(write);
  await record({ ...write, context }, "change_request_stale", stale, request);
  return stale;
}
