import { rmSync } from "node:fs";
import { join } from "node:path";
import type { Reaper } from "@halyard/local-backends";
import type { DemoCredentials } from "./credentials.ts";
import { writePrivateFile } from "./private-file.ts";
import type { ServiceProcess } from "./service-process.ts";

/**
 * `demo.json` tells programs that everything is ready, and how to reach it. It is there exactly as
 * long as that is true. In production mode there is no demo organization, and so nothing of it here.
 */
export function writeDemoFile(
  home: string,
  content: {
    baseUrl: string;
    operatorToken: string;
    demo: DemoCredentials | undefined;
    services: ServiceProcess[];
  },
): void {
  const { demo, services } = content;
  const document = {
    base_url: content.baseUrl,
    operator_token: content.operatorToken,
    ...(demo && {
      organization_id: demo.organization_id,
      project_id: demo.project_id,
      environment_id: demo.environment_id,
      client_key: demo.client_key,
      server_key: demo.server_key,
    }),
    services: Object.fromEntries(
      services.map(({ name, url, metricsUrl, pid }) => [
        name,
        { url, metrics_url: metricsUrl, pid },
      ]),
    ),
  };
  writePrivateFile(fileIn(home), `${JSON.stringify(document, null, 2)}\n`);
}

export function removeDemoFile(home: string): void {
  rmSync(fileIn(home), { force: true });
}

/** Also when this process is killed: the file holds keys, and ids of processes that end then. */
export function removeDemoFileWithUs(home: string, reaper: Reaper): void {
  reaper.removeAtOnce(fileIn(home));
}

function fileIn(home: string): string {
  return join(home, "demo.json");
}
