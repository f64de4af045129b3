import type { FastifyInstance } from "fastify";
import type { FailureLog } from "./limit-error-lines.ts";

/** Settings that the parts of one app share. */
type AppSettings = {
  readonly checkAnswers: boolean;
  readonly failureLog: FailureLog;
  /** The service is stopping: each response closes its connection. */
  draining: boolean;
};

const settingsKey = Symbol("halyard.settings");

export function decorateWithSettings(
  app: FastifyInstance,
  given: Pick<AppSettings, "checkAnswers" | "failureLog">,
): void {
  const settings: AppSettings = { ...given, draining: false };
  app.decorate(settingsKey, settings);
}

export function appSettings(app: FastifyInstance): AppSettings {
  return app.getDecorator<AppSettings>(settingsKey);
}
