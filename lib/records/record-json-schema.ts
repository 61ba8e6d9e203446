import { BASE64_PATTERN, RECORD_SCHEMA_VERSION, recordSchema } from './record.ts';

/** A JSON Schema, draft 2020-12. */
export type JsonSchema = Readonly<Record<string, unknown>>;

/** The JSON Schema of a record, made from {@link recordSchema}: both accept the same values. */
export const recordJsonSchema: JsonSchema = jsonSchema();

function jsonSchema(): JsonSchema {
    const converted = recordSchema['~standard'].jsonSchema.output({ target: 'draft-2020-12' });
    const properties = converted.properties as Record<string, object>;
    return {
        $schema: 'https://json-schema.org/draft/2020-12/schema',
        $id: `urn:scanwire:https-record:${RECORD_SCHEMA_VERSION}`,
        title: 'HTTPS scan record',
        description: 'The result of an HTTPS request made to an endpoint',
        ...converted,
        properties: { ...properties, data: { ...properties.data, pattern: BASE64_PATTERN, contentEncoding: 'base64' } },
    };
}
