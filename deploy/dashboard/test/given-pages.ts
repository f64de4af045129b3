import { createLogger, createMetrics, type Logger } from "@halyard/service";
import { createPages } from "../src/pages.ts";

/** Starts the pages, in this process. */
export async function givenPages(options: {
  dashboardDir?: string;
  demoFile?: string;
  logger?: Logger;
}) {
  const service = "dashboard";
  const app = await createPages({
    logger: createLogger({ service, level: "silent" }),
    metrics: createMetrics({ service }),
    trustedProxies: [],
    ...options,
  });
  const url = await app.listen({ host: "127.0.0.1", port: 0 });
  const stop = async () => {
    app.server.closeAllConnections();
    await app.close();
  };
  return { url, port: Number(new URL(url).port), stop };
}
