import { portState } from "@halyard/local-backends";
import { StartError } from "./start-error.ts";

/** Looked at before anything is started: a taken port is the most common reason not to start. */
export async function checkGatewayPort(options: { host: string; port: number }): Promise<void> {
  if (options.port === 0) return;
  const state = await portState(options);
  if (state === "free") return;
  const reason = state === "taken" ? "is taken by another program" : "may only be used by root";
  throw new StartError(
    `Port ${options.port} ${reason}. ` +
      `Stop that program, or choose another port: PORT=${options.port === 8080 ? 8081 : 8080} npm start`,
  );
}
