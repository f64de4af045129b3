/** Tests of the rendered manifests. They are one file because rendering takes longer than all of them. */
import "./manifests/configuration.ts";
import "./manifests/nats-configuration.ts";
import "./manifests/network-policies.ts";
import "./manifests/own-overlay.ts";
import "./manifests/pod-security.ts";
import "./manifests/references.ts";
import "./manifests/routing.ts";
import "./manifests/schemas.ts";
import "./manifests/shutdown.ts";
