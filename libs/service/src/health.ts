import type { App } from "@halyard/http";

/** Readiness of the service, with details for operators. */
type Readiness = { ready: boolean; [detail: string]: unknown };
export type ReadReadiness = () => Readiness;

/** Body of `/healthz`. The port of the API and the metrics port both serve `/healthz` and `/readyz`. */
export const alive = JSON.stringify({ status: "ok" });

export function readinessAnswer(readiness: ReadReadiness): { status: number; body: string } {
  const state = readiness();
  return { status: state.ready ? 200 : 503, body: JSON.stringify(state) };
}

export function registerHealth(app: App, readiness: ReadReadiness): void {
  // Probes arrive every few seconds, so they are neither logged nor measured.
  const options = { config: { measured: false } };
  app.get("/healthz", options, (_request, reply) => {
    reply.type("application/json; charset=utf-8").send(alive);
  });
  app.get("/readyz", options, (_request, reply) => {
    const { status, body } = readinessAnswer(readiness);
    reply.code(status).type("application/json; charset=utf-8").send(body);
  });
}
