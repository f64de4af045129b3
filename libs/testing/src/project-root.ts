import { join } from "node:path";
import { fileURLToPath } from "node:url";

/** Where the project lies, and what its tests need of it. */
export const projectRoot = fileURLToPath(new URL("../../..", import.meta.url));
/** The project's own cache, in which a fetched NATS server is kept. */
export const cacheDir = join(projectRoot, ".cache");

export function migrationsDirOf(service: string): string {
  return join(projectRoot, "services", service, "migrations");
}
