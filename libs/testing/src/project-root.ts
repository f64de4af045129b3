import { join } from "node:path";
import { fileURLToPath } from "node:url";

export const projectRoot = fileURLToPath(new URL("../../..", import.meta.url));
/** Cache directory of the project, which contains a fetched NATS server. */
export const cacheDir = join(projectRoot, ".cache");

export function migrationsDirOf(service: string): string {
  return join(projectRoot, "services", service, "migrations");
}
