import { rmSync } from "node:fs";
import { startBackgroundProcess } from "./background-process.ts";
import type { GuardMessage, ThrowawayServer } from "./guarded-server.ts";

/** Runs one server, and stops it on a message from the launcher or when the launcher has ended. */
const { throwawayDir, ...server }: ThrowawayServer = JSON.parse(process.argv[2] ?? "");

// Signals for the launcher's process group must not end the guard.
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(signal, () => {});
const { pid, exited, stop } = await startBackgroundProcess(server).catch(async (error: Error) => {
  await new Promise<void>((resolve) => tell({ failure: error.message }, resolve));
  throw error;
});
process.once("message", () => void stop());
process.once("disconnect", () => void stop());
if (!process.connected) void stop();
else tell({ pid });
const status = await exited;
if (process.connected) tell({ status }, () => process.exit());
else rmSync(throwawayDir, { recursive: true, force: true });

/** An error means that the launcher has ended. The channel then closes, which stops the server. */
function tell(message: GuardMessage, onSent: () => void = () => {}): void {
  process.send?.(message, undefined, undefined, onSent);
}
