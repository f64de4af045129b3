import { migrate, provisionService } from "@halyard/postgres";
import { migrationsDir } from "./project-root.ts";
import { roles } from "./roles.ts";

/** Makes a database with every service's roles and schema, as the migrations leave it. */
export async function prepareTemplate(
  adminUrl: string,
  database: string,
): Promise<{ managementUrl: string }> {
  const { ownerUrl, runtimeUrl } = await provisionService({
    adminUrl,
    database,
    service: "management",
    ...roles.management,
  });
  await migrate({
    ownerUrl,
    schema: "management",
    directory: migrationsDir,
    log: () => undefined,
  });
  return { managementUrl: runtimeUrl };
}
