import { describe, expect, it } from "@jest/globals";
import { installCommand, packedManifest } from "../src/client-packages.ts";

const root = {
  name: "halyard",
  version: "1.2.3",
  repository: { type: "git", url: "git+https://git.example.com/halyard/halyard.git" },
};

describe("given the manifest of a package", () => {
  const source = {
    ...{ name: "@halyard/web", version: "1.2.3", private: true },
    exports: { ".": { "halyard-source": "./src/index.ts", default: "./dist/index.js" } },
    devDependencies: { react: "19.0.0" },
  };

  it("packs it without the members for this repository, and with its addresses", () => {
    expect(packedManifest(source, "clients/web", root)).toEqual({
      ...{ name: "@halyard/web", version: "1.2.3" },
      exports: { ".": { default: "./dist/index.js" } },
      repository: { ...root.repository, directory: "clients/web" },
      homepage: "https://git.example.com/halyard/halyard/tree/main/clients/web#readme",
      bugs: { url: "https://git.example.com/halyard/halyard/issues" },
    });
  });

  it("reports a root without a repository", () => {
    const without = { name: "halyard", version: "1.2.3" };
    expect(() => packedManifest(source, "clients/web", without)).toThrow("no `repository`");
  });
});

describe("given packages that depend on each other", () => {
  const packages = [
    { name: "@halyard/a", version: "1.2.3", dependencies: { "@halyard/b": "1.2.3", other: "1" } },
    { name: "@halyard/b", version: "1.2.3", peerDependencies: { react: "19", peer: "2" } },
  ];

  it("installs a package after those that it needs, and their peers except React", () => {
    expect(installCommand("@halyard/a", packages, "/out")).toBe(
      "npm install /out/halyard-b-1.2.3.tgz /out/halyard-a-1.2.3.tgz peer",
    );
  });

  it("names a package once that is needed twice", () => {
    const dependencies = { "@halyard/a": "1.2.3", "@halyard/b": "1.2.3" };
    const both = { ...{ name: "@halyard/c", version: "1.2.3" }, dependencies };
    expect(installCommand("@halyard/c", [...packages, both], "/out").match(/halyard-\w/g)).toEqual([
      ...["halyard-b", "halyard-a", "halyard-c"],
    ]);
  });

  it("quotes a path for the shell", () => {
    expect(installCommand("@halyard/b", packages, "/it's here")).toContain(
      "'/it'\\''s here/halyard-b-1.2.3.tgz'",
    );
  });
});
