import { randomBytes } from "node:crypto";
import { type App, createApp } from "@halyard/http";
import { createAnswerOnce } from "@halyard/idempotency";
import type { AuthenticateMember, FindProtected } from "@halyard/people";
import { isOutage, type Sql } from "@halyard/postgres";
import type { Logger } from "pino";
import type { Registry } from "prom-client";
import type { FindFlag } from "./directory/flag-directory.ts";
import type { ScheduleChanges } from "./schedules/schedule-changes.ts";
import { registerScheduleRoutes } from "./schedules/schedule-routes.ts";

/** Maximum size of a request body. A schedule consists of two instants. */
const bodyLimitBytes = 1024 * 1024;

/** Creates the HTTP application of the scheduler with all its routes. */
export function createSchedulerApp(options: {
  sql: Sql;
  changes: ScheduleChanges;
  findFlag: FindFlag;
  findProtected: FindProtected;
  hasEnded: (environmentId: string) => boolean;
  authenticate: AuthenticateMember;
  trustedProxies: readonly string[];
  checkAnswers: boolean;
  metrics: Registry;
  logger: Logger;
}): App {
  const app = createApp({ ...options, bodyLimitBytes, isOutage });
  registerScheduleRoutes(app, { ...options, answerOnce: createAnswerOnce(randomBytes) });
  return app;
}
