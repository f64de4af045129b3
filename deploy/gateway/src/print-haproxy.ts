import { parseArgs } from "node:util";
import { haproxyConfiguration, serversByName } from "./haproxy.ts";
import { mapTargets } from "./route-table.ts";

/**
 * Prints the configuration of HAProxy for processes at given addresses, such as `--sdk-edge 10.0.0.5:8082,10.0.0.6:8082`.
 * Each address is one server, while a name has as many servers as DNS may return. Services without addresses have names.
 */
const { values } = parseArgs({ options: mapTargets(() => ({ type: "string" as const })) });
const byName = serversByName();
const servers = mapTargets((target) => {
  const addresses = values[target]?.split(",");
  return addresses === undefined ? byName[target] : { addresses };
});
process.stdout.write(haproxyConfiguration(servers));
