// Modules are numbered in the order of their use. The default, a hash of their paths, differs from
// folder to folder; but CI compares its build with the one in the repository.
module.exports = { optimization: { moduleIds: 'natural', chunkIds: 'natural' } };
