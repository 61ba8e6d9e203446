import Joi from 'joi';
import { checked } from '../checked.ts';
import type { HostInput } from './host.ts';

const schema = Joi.object<HostInput>({
    address: Joi.string().ip({ cidr: 'forbidden' }).required(),
    services: Joi.array().items(Joi.object({ port: Joi.number().port() }).unknown()),
}).unknown();

/** The host in normal form. @throws ScanwireError `INVALID_INPUT` with the offending field. */
export function normaliseHost(input: unknown): HostInput {
    return checked(schema, input);
}
