/** The manifest of a package in `clients`. Other members are copied as they are. */
export type Manifest = {
  name: string;
  version: string;
  private?: boolean;
  repository?: { type: string; url: string };
  exports?: Record<string, Record<string, string>>;
  dependencies?: Record<string, string>;
  devDependencies?: Record<string, string>;
  peerDependencies?: Record<string, string>;
};

/** The export condition under which packages run from their sources in this repository. */
const sourceCondition = "halyard-source";

/** An application that uses React has it already, and its version is not ours to choose. */
const broughtByApplication: ReadonlySet<string> = new Set(["react"]);

/**
 * Returns the manifest of a tarball. It has no members that are for this repository only, and the addresses of the
 * repository in the root's manifest.
 */
export function packedManifest(source: Manifest, folder: string, root: Manifest): object {
  const { private: _, devDependencies: __, exports = {}, ...kept } = source;
  const packedExports = Object.fromEntries(
    Object.entries(exports).map(([entry, conditions]) => [
      entry,
      Object.fromEntries(Object.entries(conditions).filter(([name]) => name !== sourceCondition)),
    ]),
  );
  return { ...kept, ...addressesOf(folder, root), exports: packedExports };
}

function addressesOf(folder: string, { repository }: Manifest) {
  if (repository === undefined) throw new Error("package.json has no `repository`. Add it.");
  const page = repository.url.replace(/^git\+|\.git$/g, "");
  return {
    repository: { ...repository, directory: folder },
    homepage: `${page}/tree/main/${folder}#readme`,
    bugs: { url: `${page}/issues` },
  };
}

/** Returns the file name that npm gives the tarball of a package. */
export function tarballOf({ name, version }: Pick<Manifest, "name" | "version">): string {
  return `${name.replace("@", "").replace("/", "-")}-${version}.tgz`;
}

/** Returns the command that installs a package from tarballs: of itself and of the packages that it needs. */
export function installCommand(name: string, manifests: readonly Manifest[], folder: string) {
  const needed = neededBy(name, manifests);
  const tarballs = needed.map((manifest) => shellQuote(`${folder}/${tarballOf(manifest)}`));
  const peers = needed.flatMap(({ peerDependencies = {} }) => Object.keys(peerDependencies));
  const others = peers.filter((peer) => !broughtByApplication.has(peer));
  return ["npm install", ...tarballs, ...others].join(" ");
}

/** Returns a package and those that it depends on, dependencies first, each once. */
function neededBy(name: string, manifests: readonly Manifest[]): Manifest[] {
  const manifest = manifests.find((each) => each.name === name);
  if (manifest === undefined) return [];
  const dependencies = Object.keys(manifest.dependencies ?? {});
  const needed = dependencies.flatMap((each) => neededBy(each, manifests));
  return [...new Set([...needed, manifest])];
}

function shellQuote(path: string): string {
  return /^[\w./@+-]+$/.test(path) ? path : `'${path.replaceAll("'", "'\\''")}'`;
}
