import Joi from 'joi';

/**
 * Joi schema of an object that somebody else implements: it has these functions, whatever else it is. The object passes
 * through as it is, never cloned, so that instances of classes keep working.
 */
export function implementing<T extends object>(...methods: readonly (keyof T & string)[]): Joi.ObjectSchema<T> {
    return Joi.object<T>()
        .unknown()
        .custom((value: T, helpers) => {
            const missing = methods.find((method) => typeof value[method] !== 'function');
            return missing === undefined ? value : helpers.message({ custom: `{{#label}} must have the function ${missing}` });
        });
}
