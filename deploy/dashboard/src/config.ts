import { join } from "node:path";
import { listenVariables, portVariable, readEnvironment, variable } from "@halyard/configuration";
import { z } from "zod";

/** The folder into which `npm run build --workspace services/dashboard` and the image build the dashboard. */
const builtDashboard = join(import.meta.dirname, "../../../services/dashboard/dist");

export const configSchema = z.object({
  ...listenVariables,
  PORT: portVariable(8086),
  DEMO_FILE: variable(z.string().optional(), {
    description:
      "The `demo.json` of a demo, whose ids `/openapi.json` shows as examples. `npm start` sets it. The file may be missing.",
    expects: "the path of a file",
    documentedDefault: "placeholders",
  }),
  DASHBOARD_DIR: variable(z.string().default(builtDashboard), {
    description:
      "Folder of the built dashboard. Without one, browsers are redirected from `/` to `/docs`.",
    expects: "the path of a directory",
    documentedDefault: "`services/dashboard/dist` of this installation",
  }),
});

export const readConfig = () => readEnvironment(configSchema, process.env);
