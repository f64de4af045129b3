import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { expect, it } from "@jest/globals";
import { projectRoot, readProjectFile } from "./compose-file.ts";

it("the image contains the licenses of the packages in it", () => {
  const script = "deploy/docker/third-party-notices.mjs";
  expect(readProjectFile("deploy/docker/Dockerfile")).toContain(
    `node ${script} kept > kept/THIRD-PARTY-LICENSES.txt`,
  );
  const notices = execFileSync(process.execPath, [join(projectRoot, script), projectRoot], {
    encoding: "utf8",
    maxBuffer: 1 << 26,
  });
  const [, pino = ""] = /^pino \S+ \(MIT\)\n\n([\s\S]+?)\n-{80}\n/m.exec(notices) ?? [];
  expect(pino).toContain("Permission is hereby granted");
  expect(notices).not.toMatch(/^@halyard\//m);
});
