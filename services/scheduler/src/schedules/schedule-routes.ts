import {
  type AuthenticateServerKey,
  checkKeyEnvironment,
  type DirectoryKey,
} from "@halyard/api-keys";
import * as contract from "@halyard/contracts";
import type { AnswerOnce } from "@halyard/idempotency";
import type { Sql } from "@halyard/postgres";
import {
  type App,
  answer,
  idOfCursor,
  isRefusal,
  noSuchCursor,
  pageOf,
  type Refusal,
  refuse,
  registerRoute,
} from "@halyard/service";
import type { FindFlag } from "../directory/flag-directory.ts";
import type { SchedulePlace } from "./schedule.ts";
import type { Author } from "./schedule-audit.ts";
import type { ScheduleChanges } from "./schedule-changes.ts";
import { scheduleResource } from "./schedule-resource.ts";
import { findLatest, listSchedules } from "./schedule-store.ts";

const defaultPageSize = 100;

/** The routes of schedules. Every one needs a server key of the project. */
export function registerScheduleRoutes(
  app: App,
  options: {
    sql: Sql;
    changes: ScheduleChanges;
    findFlag: FindFlag;
    answerOnce: AnswerOnce;
    authenticate: AuthenticateServerKey;
  },
): void {
  const { sql, changes, findFlag, answerOnce, authenticate } = options;

  /** The flag in the environment that a path names, if this key may know of it and touch it. */
  async function placeOf(
    key: DirectoryKey,
    params: { flagId: string; envId: string },
  ): Promise<SchedulePlace | Refusal> {
    const flagId = params.flagId.toLowerCase();
    const environmentId = params.envId.toLowerCase();
    const flag = await findFlag({ flagId, environmentId });
    if (flag?.projectId !== key.projectId)
      return refuse("NOT_FOUND_001", "There is no such flag or environment in this project.");
    const { organizationId, projectId } = key;
    const place = { organizationId, projectId, environmentId, flagId };
    return checkKeyEnvironment(key, environmentId) ?? place;
  }

  registerRoute(app, contract.setSchedule, {
    authenticate,
    handle: async ({ params, body, request }, key) => {
      const place = await placeOf(key, params);
      // Who has had an answer is given it again, whatever has become of the flag since.
      if (isRefusal(place) && request.idempotencyKey === undefined) return place;
      const { operationId } = contract.setSchedule;
      const asked = { caller: key.id, operationId, params, body, request };
      return changes.set(place, { author: authorOf(key), request: body }, (tx, make) =>
        answerOnce(tx, asked, async () => {
          const schedule = await make();
          if (isRefusal(schedule)) return schedule;
          return answer.created(
            `/api/v1/flags/${schedule.flagId}/environments/${schedule.environmentId}/schedule`,
            scheduleResource(schedule),
          );
        }),
      );
    },
  });

  registerRoute(app, contract.getSchedule, {
    authenticate,
    handle: async ({ params }, key) => {
      const place = await placeOf(key, params);
      if (isRefusal(place)) return place;
      const schedule = await findLatest(sql, place);
      if (schedule === undefined)
        return refuse("NOT_FOUND_001", "Nothing was ever scheduled for this flag here.");
      return answer.ok(scheduleResource(schedule));
    },
  });

  registerRoute(app, contract.clearSchedule, {
    authenticate,
    handle: async ({ params }, key) => {
      const place = await placeOf(key, params);
      if (isRefusal(place)) return place;
      const cleared = await changes.clear(place, authorOf(key));
      return cleared === "cleared" ? answer.noContent() : cleared;
    },
  });

  registerRoute(app, contract.listSchedules, {
    authenticate,
    handle: async ({ query }, key) => {
      const beforeId = query.cursor === undefined ? undefined : idOfCursor(query.cursor);
      if (query.cursor !== undefined && beforeId === undefined) return noSuchCursor;
      const environmentId =
        query.environment_id ?? (key.environmentOnly ? key.environmentId : undefined);
      const refusal = environmentId && checkKeyEnvironment(key, environmentId.toLowerCase());
      if (refusal) return refusal;
      const limit = query.limit ?? defaultPageSize;
      const found = await listSchedules(sql, {
        projectId: key.projectId,
        status: query.status,
        flagId: query.flag_id,
        environmentId,
        beforeId,
        limit: limit + 1,
      });
      const page = pageOf(found, limit, ({ id }) => id);
      return answer.ok({
        schedules: page.items.map(scheduleResource),
        next_cursor: page.nextCursor,
      });
    },
  });
}

function authorOf(key: DirectoryKey): Author {
  return { userId: key.userId, apiKeyId: key.id };
}
