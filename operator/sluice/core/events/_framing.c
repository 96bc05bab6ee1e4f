/* `walk` of sluice.core.events.framing, without the GIL. One binary suits each Python from 3.11 on. */
#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x030B0000
#include <Python.h>
#include <stdint.h>

enum {
    HEADER = 8,
    /* A thread may wait 5 ms until it has the GIL back. A walk through fewer bytes than these takes
       some microseconds, and keeps it. */
    LARGE = 1 << 17,
};

static uint32_t number(const unsigned char *p) {
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static PyObject *walk(PyObject *Py_UNUSED(module), PyObject *args) {
    Py_buffer block;
    long long start;
    if (!PyArg_ParseTuple(args, "y*L:walk", &block, &start))
        return NULL;
    if (start < 0) {
        PyBuffer_Release(&block);
        PyErr_SetString(PyExc_ValueError, "the walk begins before the block");
        return NULL;
    }
    const unsigned char *bytes = block.buf;
    /* 64 bits on any machine: the sum of an index and a length does not overflow. */
    int64_t at = start, last = (int64_t)block.len - HEADER, begun = -1, events = 0;
    PyThreadState *thread = at < last - LARGE ? PyEval_SaveThread() : NULL;
    while (at <= last) {
        uint32_t length = number(bytes + at + 4);
        if (number(bytes + at) != 0 || length > INT32_MAX)
            break;
        begun = at;
        at += HEADER + (int64_t)length;
        events++;
    }
    if (thread != NULL)
        PyEval_RestoreThread(thread);
    PyBuffer_Release(&block);
    return Py_BuildValue("(LLL)", (long long)events, (long long)begun, (long long)at);
}

static PyMethodDef methods[] = {{"walk", walk, METH_VARARGS, NULL}, {NULL, NULL, 0, NULL}};

static PyModuleDef_Slot slots[] = {{0, NULL}};

static struct PyModuleDef module = {
    PyModuleDef_HEAD_INIT,
    .m_name = "_framing",
    .m_doc = FINGERPRINT, /* by which docker/compile.py recognises the binary of this source */
    .m_methods = methods,
    .m_slots = slots,
};

PyMODINIT_FUNC PyInit__framing(void) { return PyModuleDef_Init(&module); }
