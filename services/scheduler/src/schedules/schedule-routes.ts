import { checkKeyEnvironment } from "@halyard/api-keys";
import * as contract from "@halyard/contracts";
import {
  type App,
  answer,
  createProblem,
  idOfCursor,
  isProblem,
  noSuchCursor,
  type Problem,
  pageOf,
  registerRoute,
} from "@halyard/http";
import type { AnswerOnce } from "@halyard/idempotency";
import type { AuthenticateMember, Caller, FindProtected } from "@halyard/people";
import type { Sql } from "@halyard/postgres";
import type { FindFlag } from "../directory/flag-directory.ts";
import { type Conditions, checkPending, pathOf, tagOf } from "./check-pending.ts";
import { checkProtection } from "./check-protection.ts";
import {
  type Author,
  latenessMs,
  publicState,
  type Schedule,
  type ScheduleScope,
} from "./schedule.ts";
import type { ScheduleChanges } from "./schedule-changes.ts";
import { findLatest, listSchedules, type Permit } from "./schedule-store.ts";

const defaultPageSize = 100;

type ScheduleRoutes = {
  sql: Sql;
  changes: ScheduleChanges;
  findFlag: FindFlag;
  findProtected: FindProtected;
  /** Returns whether an environment was deleted. Its schedules are left out. */
  hasEnded: (environmentId: string) => boolean;
  answerOnce: AnswerOnce;
  authenticate: AuthenticateMember;
};

/** Registers the routes of schedules. Each requires a server key of the project. */
export function registerScheduleRoutes(app: App, options: ScheduleRoutes): void {
  registerChanges(app, options);
  registerReads(app, options);
}

function registerChanges(app: App, options: ScheduleRoutes): void {
  const { changes, findFlag, findProtected, answerOnce, authenticate } = options;

  registerRoute(app, contract.setSchedule, {
    authenticate: authenticate(contract.setSchedule),
    handle: async ({ params, body, request }, key) => {
      const scope = await scopeOf(findFlag, key, params);
      // With an idempotency key, a stored answer is returned even if the flag was deleted since.
      if (isProblem(scope) && request.idempotencyKey === undefined) return scope;
      const { operationId } = contract.setSchedule;
      const asked = { caller: key.id, operationId, params, body, request };
      const permit = permitOf(scope, {
        ifMatch: request.ifMatch,
        ifNoneMatch: request.headers["if-none-match"],
      });
      const environment = findProtected(params.envId.toLowerCase());
      const requested = {
        author: authorOf(key),
        request: body,
        permit: (pendingId: string | undefined) =>
          permit(pendingId) ?? checkProtection(environment, body),
      };
      return changes.set(scope, requested, (tx, make) =>
        answerOnce(tx, asked, async () => {
          const schedule = await make();
          if (isProblem(schedule)) return schedule;
          const etag = tagOf(schedule);
          return answer.created(pathOf(schedule), scheduleResource(schedule), { etag });
        }),
      );
    },
  });

  registerRoute(app, contract.clearSchedule, {
    authenticate: authenticate(contract.clearSchedule),
    handle: async ({ params, request }, key) => {
      const scope = await scopeOf(findFlag, key, params);
      if (isProblem(scope)) return scope;
      const permit = permitOf(scope, { ifMatch: request.ifMatch });
      const cleared = await changes.clear(scope, { author: authorOf(key), permit });
      return cleared === "cleared" ? answer.noContent() : cleared;
    },
  });
}

function registerReads(app: App, { sql, findFlag, hasEnded, authenticate }: ScheduleRoutes): void {
  registerRoute(app, contract.getSchedule, {
    authenticate: authenticate(contract.getSchedule),
    handle: async ({ params }, key) => {
      const scope = await scopeOf(findFlag, key, params);
      if (isProblem(scope)) return scope;
      const schedule = await findLatest(sql, scope);
      if (schedule === undefined)
        return createProblem("NOT_FOUND_001", "This flag has no schedule in this environment.");
      return answer.ok(scheduleResource(schedule), { etag: tagOf(schedule) });
    },
  });

  registerRoute(app, contract.listSchedules, {
    authenticate: authenticate(contract.listSchedules),
    handle: async ({ query }, key) => {
      const { cursor, status, flag_id: flagId, limit = defaultPageSize } = query;
      const beforeId = cursor === undefined ? undefined : idOfCursor(cursor);
      if (cursor !== undefined && beforeId === undefined) return noSuchCursor;
      const environmentId =
        query.environment_id ?? (key.environmentOnly ? key.environmentId : undefined);
      const problem = environmentId && checkKeyEnvironment(key, environmentId.toLowerCase());
      if (problem) return problem;
      const { projectId } = key;
      const asked = { projectId, status, flagId, environmentId, beforeId, limit: limit + 1 };
      const page = pageOf(await listSchedules(sql, asked), limit, ({ id }) => id);
      return answer.ok({
        schedules: page.items
          .filter((schedule) => !hasEnded(schedule.environmentId))
          .map(scheduleResource),
        next_cursor: page.nextCursor,
      });
    },
  });
}

/** Returns the flag and environment in the path, or a problem if the key has no access to them. */
async function scopeOf(
  findFlag: FindFlag,
  key: Caller,
  params: { flagId: string; envId: string },
): Promise<ScheduleScope | Problem> {
  const flagId = params.flagId.toLowerCase();
  const environmentId = params.envId.toLowerCase();
  const flag = await findFlag({ flagId, environmentId });
  if (flag?.projectId !== key.projectId)
    return createProblem("NOT_FOUND_001", "There is no such flag or environment in this project.");
  const { organizationId, projectId } = key;
  const scope = { organizationId, projectId, environmentId, flagId };
  return checkKeyEnvironment(key, environmentId) ?? scope;
}

/** Returns the check of the conditions of a request. The flag may be missing, with nothing to check. */
function permitOf(scope: ScheduleScope | Problem, conditions: Conditions): Permit {
  return (pendingId) => (isProblem(scope) ? scope : checkPending(conditions, pendingId, scope));
}

function authorOf({ userId, id, via }: Caller): Author {
  return via === "key" ? { userId, apiKeyId: id } : { userId, apiKeyId: null, via };
}

/** Returns the representation of a schedule in the API. */
function scheduleResource(schedule: Schedule): contract.Schedule {
  return {
    id: schedule.id,
    flag_id: schedule.flagId,
    environment_id: schedule.environmentId,
    enable_at: schedule.enableAt?.toISOString() ?? null,
    disable_at: schedule.disableAt?.toISOString() ?? null,
    status: schedule.status,
    changes: schedule.changes.map((change) => ({
      action: change.action,
      at: change.dueAt.toISOString(),
      state: publicState(change.state),
      applied_at: change.appliedAt?.toISOString() ?? null,
      lateness_ms: latenessMs(change),
    })),
    created_at: schedule.createdAt.toISOString(),
    created_by: schedule.createdBy,
    cancelled_at: schedule.cancelledAt?.toISOString() ?? null,
    cancelled_by: schedule.cancelledBy,
  };
}
