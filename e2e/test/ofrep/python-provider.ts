import { execFile } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { programs } from "@halyard/testing/programs";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import type { ClientSystem } from "../../src/system/client-system.ts";
import { createTenant, must, type Tenant } from "../../src/system/tenancy.ts";

const run = promisify(execFile);
const installsMs = 120_000;

/** Sent as a number. `JSON.stringify` writes -0 as 0. */
const minusZero = "-0";
const banner = { title: "Sale", colors: ["red", "white"], rate: 0.5 };
const flags = [
  { key: "color", value_type: "string", values: ["#0055ff", "#cc0000"] },
  { key: "timeout", value_type: "number", values: [0.5, 10] },
  { key: "count", value_type: "number", values: [1, 2] },
  { key: "tenth", value_type: "number", values: [0.1] },
  { key: "tiny", value_type: "number", values: [1e-21] },
  { key: "smallest", value_type: "number", values: [5e-324] },
  { key: "largest", value_type: "number", values: [2 ** 53 - 1] },
  { key: "zero", value_type: "number", values: [minusZero] },
  { key: "banner", value_type: "object", values: [{}, banner] },
  { key: "off", value_type: "string", values: ["#0055ff", "#cc0000"], enabled: false },
  { key: "unset", value_type: "string", values: ["a"], enabled: false },
].map(({ values, ...flag }) => ({
  ...{ name: flag.key, enabled: true },
  ...flag,
  variations: values.map((value, index) => ({ key: `v${index}`, value })),
  serve: { variation: `v${values.length - 1}` },
}));

/** Reads each flag with its own method, and one of them with another type. Prints the details as JSON. */
const pythonProgram = `
import json, os
from openfeature import api
from openfeature.contrib.provider.ofrep import OFREPProvider
from openfeature.evaluation_context import EvaluationContext

headers = {"Authorization": "Bearer " + os.environ["HALYARD_KEY"]}
provider = OFREPProvider(os.environ["HALYARD_URL"], headers_factory=lambda: headers)
api.set_provider_and_wait(provider)
client = api.get_client()
user = EvaluationContext("anna")
found = {
    "color": client.get_string_details("color", "none", user),
    "timeout": client.get_float_details("timeout", 1.5, user),
    "count": client.get_integer_details("count", 7, user),
    "tenth": client.get_float_details("tenth", 7.5, user),
    "tiny": client.get_float_details("tiny", 7.5, user),
    "smallest": client.get_float_details("smallest", 7.5, user),
    "largest": client.get_integer_details("largest", 7, user),
    "zero": client.get_integer_details("zero", 7, user),
    "banner": client.get_object_details("banner", {}, user),
    "unset": client.get_string_details("unset", "none", user),
    "integer read as a float": client.get_float_details("count", 7.5, user),
    "float read as an integer": client.get_integer_details("timeout", 7, user),
    "off variation of a disabled flag": client.get_string_details("off", "none", user),
    "mismatch": client.get_boolean_details("color", True, user),
}
print(json.dumps({
    name: {"value": d.value, "variant": d.variant, "errorCode": d.error_code}
    for name, d in found.items()
}))
`;

/** The official provider for Python with flags of all types. */
export function describePythonProvider(given: () => ClientSystem): void {
  const describeInPython = programs.python.isMissing ? describe.skip : describe;
  describeInPython("given flags of all types", () => {
    const directory = mkdtempSync(join(tmpdir(), "halyard-openfeature-"));
    const requirements = fileURLToPath(new URL("../../openfeature-tools.txt", import.meta.url));
    let tenant: Tenant;
    beforeAll(async () => {
      const url = `${given().gateway.url}/api/v1/flags`;
      tenant = await createTenant(given().gateway.url, { name: "Python" });
      const headers = { "content-type": "application/json" };
      for (const flag of flags) {
        const text = JSON.stringify(flag).replace(`"${minusZero}"`, minusZero);
        await must(url, { method: "POST", key: tenant.serverKey, headers, text });
      }
      await run("python3", ["-m", "venv", directory]);
      const install = ["install", "--quiet", "--requirement", requirements];
      await run(join(directory, "bin/pip"), install);
    }, installsMs);
    afterAll(() => rmSync(directory, { recursive: true }));

    it("returns their values, the caller's default, and the default for another type", async () => {
      const env = { HALYARD_URL: given().gateway.url, HALYARD_KEY: tenant.clientKey };
      const { stdout } = await run(join(directory, "bin/python"), ["-c", pythonProgram], { env });
      expect(JSON.parse(stdout)).toMatchObject({
        color: { value: "#cc0000", variant: "v1" },
        timeout: { value: 10, variant: "v1" },
        count: { value: 2, variant: "v1" },
        tenth: { value: 0.1, errorCode: null },
        tiny: { value: 1e-21, errorCode: null },
        smallest: { value: 5e-324, errorCode: null },
        largest: { value: 2 ** 53 - 1, errorCode: null },
        zero: { value: 0, errorCode: null },
        banner: { value: banner, variant: "v1" },
        unset: { value: "none", variant: "", errorCode: null },
        "integer read as a float": { value: 7.5, errorCode: "TYPE_MISMATCH" },
        "float read as an integer": { value: 7, errorCode: "TYPE_MISMATCH" },
        "off variation of a disabled flag": { value: "#cc0000", variant: "v1", errorCode: null },
        mismatch: { value: true, errorCode: "TYPE_MISMATCH" },
      });
    });
  });
}
