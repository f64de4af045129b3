import { randomBytes } from "node:crypto";
import type { AuthenticateServerKey } from "@halyard/api-keys";
import { createAnswerOnce } from "@halyard/idempotency";
import { isOutage, type Sql } from "@halyard/postgres";
import { type App, createApp } from "@halyard/service";
import type { Logger } from "pino";
import type { Registry } from "prom-client";
import type { FindFlag } from "./directory/flag-directory.ts";
import type { ScheduleChanges } from "./schedules/schedule-changes.ts";
import { registerScheduleRoutes } from "./schedules/schedule-routes.ts";

/** A schedule is two instants; a body that is larger than this is none. */
const bodyLimitBytes = 1024 * 1024;

/** The HTTP side of the scheduler: all its routes over what they need. */
export function createSchedulerApp(options: {
  sql: Sql;
  changes: ScheduleChanges;
  findFlag: FindFlag;
  authenticate: AuthenticateServerKey;
  trustedProxies: readonly string[];
  checkAnswers: boolean;
  metrics: Registry;
  logger: Logger;
}): App {
  const app = createApp({ ...options, bodyLimitBytes, isOutage });
  registerScheduleRoutes(app, { ...options, answerOnce: createAnswerOnce(randomBytes) });
  return app;
}
