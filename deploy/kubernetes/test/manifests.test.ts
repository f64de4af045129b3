/** Tests of the rendered manifests. They share one file, because the rendering takes longer than all tests together. */
import "./manifests/configuration.ts";
import "./manifests/nats-configuration.ts";
import "./manifests/network-policies.ts";
import "./manifests/own-overlay.ts";
import "./manifests/pod-security.ts";
import "./manifests/references.ts";
import "./manifests/routing.ts";
import "./manifests/schemas.ts";
import "./manifests/shutdown.ts";
