import type { App } from "./app.ts";

/** Whether the service can do its job, with details for people that look. */
export type Readiness = { ready: boolean; [detail: string]: unknown };
export type ReadReadiness = () => Readiness;

/** The answers of `/healthz` and `/readyz`, which two servers give alike. */
export const alive = JSON.stringify({ status: "ok" });

export function readinessAnswer(readiness: ReadReadiness): { status: number; body: string } {
  const state = readiness();
  return { status: state.ready ? 200 : 503, body: JSON.stringify(state) };
}

export function registerHealth(app: App, readiness: ReadReadiness): void {
  // Probes come every few seconds, for ever: they are neither logged nor measured.
  const options = { config: { measured: false } };
  app.get("/healthz", options, (_request, reply) => {
    reply.type("application/json; charset=utf-8").send(alive);
  });
  app.get("/readyz", options, (_request, reply) => {
    const { status, body } = readinessAnswer(readiness);
    reply.code(status).type("application/json; charset=utf-8").send(body);
  });
}
