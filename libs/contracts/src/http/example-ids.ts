/** Ids in the examples of the OpenAPI document. They are placeholders: every installation has its own ids. */
export const exampleIds = {
  organizationId: "01993b5e-7a00-7c3e-9a51-0c5b1f0e4d21",
  userId: "01993b5e-7a01-7d8a-8f02-51c7d6a4e0b3",
  projectId: "01993b5e-7a02-71b4-b6c9-2f9e83d70a15",
  environmentId: "01993b5e-7a03-7e60-a3d8-7740c2b95f6e",
  flagId: "01993b5e-7a04-7f17-94eb-c81a3e5d2096",
  webhookId: "01993b5e-7a05-7a92-8d34-1be60f97c4d8",
  deliveryId: "01993b5e-7a06-7b05-b1f7-e35d90a8427c",
  keyId: "abcdefghijklmno2",
  /** Confirms no deletion, because it differs from the other ids. */
  confirm: "01993b5e-7a07-7d11-8c5e-4f20ab96d3e8",
} as const;
