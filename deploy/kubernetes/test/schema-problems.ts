import type { RenderedObject } from "./rendered-overlay.ts";

const packages: Readonly<Record<string, string>> = {
  "cert-manager.io": "@kubernetes-models/cert-manager",
  "gateway.networking.k8s.io": "@kubernetes-models/gateway-api",
  "monitoring.coreos.com": "@kubernetes-models/prometheus-operator",
  "postgresql.cnpg.io": "@kubernetes-models/cloudnative-pg",
};

type Model = { validate: () => void };
type Models = Readonly<Record<string, (new (object: unknown) => Model) | undefined>>;

/** Validates an object against the schema of its kind. An unknown kind or field is a problem. */
export async function schemaProblems(object: RenderedObject): Promise<string[]> {
  const { apiVersion, kind } = object;
  const group = apiVersion.split("/")[0] ?? "";
  const path = `${packages[group] ?? "kubernetes-models"}/${apiVersion}/${kind}`;
  const models = (await import(path).catch(() => ({}))) as Models;
  const ModelOfKind = models[kind];
  if (ModelOfKind === undefined) return [`unknown kind ${apiVersion} ${kind}`];
  const model = new ModelOfKind(object);
  const unknown: string[] = [];
  const observed = observe(model, "", unknown);
  try {
    model.validate.call(observed.proxy);
  } catch (error) {
    return [(error as Error).message];
  }
  observed.finish();
  return unknown;
}

type Observed = { proxy: object; finish: () => void };

/**
 * Records which fields a validator reads. The schemas allow unknown fields, but their validators read every field that
 * they know. A field that was never read is therefore unknown. If no field of an object was read, its schema is
 * free-form.
 */
function observe(target: object, path: string, unknown: string[]): Observed {
  const read = new Set<string | symbol>();
  const children = new Map<string | symbol, Observed>();
  const proxy = new Proxy(target, {
    get(_target, key) {
      const value: unknown = Reflect.get(target, key);
      read.add(key);
      if (typeof value !== "object" || value === null) return value;
      const child = children.get(key) ?? observe(value, `${path}.${String(key)}`, unknown);
      children.set(key, child);
      return child.proxy;
    },
  });
  const finish = () => {
    if (read.size === 0) return;
    for (const key of Object.keys(target))
      if (!read.has(key)) unknown.push(`unknown field ${path}.${key}`);
    for (const child of children.values()) child.finish();
  };
  return { proxy, finish };
}
