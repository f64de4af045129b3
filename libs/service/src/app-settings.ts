import type { FastifyInstance } from "fastify";

/** What the parts of one app share, reached from the app itself. */
export type AppSettings = {
  readonly checkAnswers: boolean;
  /** The service is about to stop: each answer closes its connection. */
  draining: boolean;
};

const settingsKey = Symbol("halyard.settings");

export function decorateWithSettings(
  app: FastifyInstance,
  given: { checkAnswers: boolean },
): AppSettings {
  const settings: AppSettings = { ...given, draining: false };
  app.decorate(settingsKey, settings);
  return settings;
}

export function appSettings(app: FastifyInstance): AppSettings {
  return app.getDecorator<AppSettings>(settingsKey);
}
